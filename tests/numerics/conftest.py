from hypothesis import settings

# The first example of a kernel may compile it.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
