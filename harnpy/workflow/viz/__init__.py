"""Charts of graphs and runs, as Mermaid and as SVG. Spec: 09 §6.4."""
