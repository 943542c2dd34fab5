"""The standalone share page: one HTML file that carries its data, draws it without a network, and checks itself."""
