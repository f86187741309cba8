default = nil
