core.request_shutdown("bye", false, 0)
