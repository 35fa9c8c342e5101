"""Every sentence that a release publishes, as constants: templates for `str.format`, and no code.

The code that writes a release fills them in, and so does verification, each with numbers of its
own. A change of a word here changes what verification expects of every release.
"""
