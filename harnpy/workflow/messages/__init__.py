"""Messages to workflows, in mailboxes that processes share: signals, queries, updates. Spec: 08 §10."""
