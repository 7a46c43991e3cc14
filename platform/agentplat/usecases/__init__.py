"""What the platform does, one verb a file. Every use case decides by itself whether its caller may; the edges only carry."""
