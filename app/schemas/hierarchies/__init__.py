"""Label trees and vocabularies, and their editions."""
