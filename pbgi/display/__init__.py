"""How things show themselves to people, wherever they are shown.

wording.py     numbers with sensible digits, texts without what would move a cursor
tables.py      records of a study as tables in a terminal
notebook.py    objects as small tables in a notebook
"""
