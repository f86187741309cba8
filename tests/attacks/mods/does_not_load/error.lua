error('no')
