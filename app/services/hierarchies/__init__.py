"""Label trees and vocabularies, and what is said of their labels."""
