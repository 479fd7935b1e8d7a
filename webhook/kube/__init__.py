"""The cluster side: the API server as the source of the picture and as the keeper of the book.

Read in this order: `client` (calls), `reflector` (list and watch), `watch` (the picture), `commits` (pure:
what the book's objects say), `objects`, `ledger` (the book); `gangs`, `reconcile`, `replan`, `tighten` (pure:
what is to be done), `controller` (doing it), `leader`, `events`; `checks` (what `bayplan doctor` looks at).
"""
