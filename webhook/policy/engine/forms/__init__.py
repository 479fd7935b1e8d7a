"""What templates and objects have in common that differ only in values which hardly any policy reads.

- `form`: the *form* of such objects; each of the values in which they differ is a *stand-in* in it
- `equal_objects`: the forms of the new objects of many requests and of their only templates, and the
  outcomes of policies on them
- `no_effect`: the policies that do nothing to such objects, which are not even begun

`sharing` runs policies on them. Begin with `form.Form`.
"""
