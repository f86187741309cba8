core.request_shutdown("", false, 0)
