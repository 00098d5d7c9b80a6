"""Tables in Markdown."""


def table(header, rows):
  """Returns a table, a line per row.

  Args:
    header: List of texts, one per column.
    rows: Lists of as many texts.
  """
  lines = [header, ["---"] * len(header), *rows]
  return "\n".join(f"| {' | '.join(line)} |" for line in lines)
