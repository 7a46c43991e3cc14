"""The graph service: keeps who emits what and who is started by what, and says which loops a version would close."""
