"""Work trees: where runs that work in a space find the files of its workspace's repositories, each space apart (W-10)."""
