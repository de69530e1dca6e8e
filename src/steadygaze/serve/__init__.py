"""The web workbench and its REST API, on this machine unless a token protects it."""
