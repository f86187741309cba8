os.exit(0, true)
