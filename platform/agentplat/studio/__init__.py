"""Studio: the platform's pages for people, made on the server, in three languages; they read and act without scripts."""
