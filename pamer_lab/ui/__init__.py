"""What pages are made of: one folder per page, and `shared` for what several pages use."""
