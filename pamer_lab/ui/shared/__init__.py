"""What several pages use: loading, charts, forms, words."""
