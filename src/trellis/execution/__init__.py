"""How tasks are mapped over families of areas and over runs of them.

tasks.py       what a task is, and which arrays it fills
executor.py    the port: two verbs, and which executor serves them
threads.py     the default: arrays are shared, nothing is copied
processes.py   a pool of processes: tasks travel as pickles, their arrays in a file
progress.py    how far the work of a stage has come
"""
