"""Charts of the lab as plain Plotly figures, without Streamlit: usable in a notebook as on a page."""
