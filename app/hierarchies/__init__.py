"""Label trees and vocabularies: nodes, names, editions."""
