"""What people see: tables, boards, reports, charts and failures as text."""
