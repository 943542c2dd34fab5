"""The outside world's models: frozen language models, embedders, chat clients, and the weights that come with us."""
