"""Tables and figures as text, pictures, Markdown and HTML; the only place with Plotly and Jinja."""
