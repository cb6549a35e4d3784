"""Label trees that are learnt: clusterings of the classes, a machine in every node, and the models they make."""
