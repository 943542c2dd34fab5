"""The controller in front of a running agent: a proxy on loopback that passes requests on, edits some, and records them all."""
