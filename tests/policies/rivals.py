"""Every rival policy with parameters that make it act on small traces."""

SMALL_RIVALS = [
    "auto-compact:700:tail=1",
    "observation-masking:2",
    "masking-summary:3:m=2",
    "keep-last-tokens:200:minimum=100",
    "truncate-results:40:keep=1",
    "dedupe-reads",
    "acon:300",
    "acon:300:rule=accumulate",
    "acon-observation:60",
    "comem:3",
    "memgpt:900",
    "sam:700:page=300",
    "sam:700:page=300:read=pages",
    "selfcompact-rules:3:window=4000",
    "lineprune-lexical:1",
    "tokenprune-idf:0.4:keep=1",
]
