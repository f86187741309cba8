core.unregister_item("default:dirt")
