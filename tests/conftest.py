from hypothesis import settings

# Machines that run tests are busy, and the first example of a kernel may compile it.
settings.register_profile("trellis", deadline=None)
settings.load_profile("trellis")
