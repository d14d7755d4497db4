"""Tables and figures as pictures and HTML pages; the only place with Plotly, Jinja and matplotlib."""
