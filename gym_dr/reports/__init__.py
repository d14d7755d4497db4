"""Tables, and what shows them: as text, Markdown and HTML."""
