"""Pictures of graphs and runs: a chart, and how it reads as Mermaid and as SVG. Spec: 09 §6.4."""
