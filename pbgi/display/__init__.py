"""How things show themselves to people, wherever they are shown.

wording.py     numbers with sensible digits, texts without what would move a cursor
notebook.py    objects as small tables in a notebook
"""
