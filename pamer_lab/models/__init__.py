"""Models: frozen language models, embedders, chat clients, and the packaged weights."""
