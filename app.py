"""The router: which pages there are, and nothing else. Start it with `make run` or `streamlit run app.py`."""

import streamlit as st

st.set_page_config(page_title="PaMER Lab", page_icon=":material/manage_search:", layout="wide")
st.navigation(
    [
        st.Page("pages/traces.py", title="Traces", icon=":material/list_alt:", default=True),
        st.Page("pages/trace.py", title="Transcript", icon=":material/article:", url_path="trace"),
    ],
    position="top",
).run()
