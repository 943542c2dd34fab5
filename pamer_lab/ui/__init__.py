"""What pages share: state in the URL, cached loaders, safe text, numbers, colours, charts."""
