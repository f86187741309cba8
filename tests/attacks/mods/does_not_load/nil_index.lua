local a = nil + 1
