"""MeSH's descriptors in the shape of `desc2026.xml`, as the National Library of Medicine writes it."""

HEAD = """<?xml version="1.0"?>
<!DOCTYPE DescriptorRecordSet SYSTEM "https://www.nlm.nih.gov/databases/dtd/nlmdescriptorrecordset_20260101.dtd">
<DescriptorRecordSet LanguageCode = "eng">
"""


def descriptor(
    id: str, name: str, numbers: tuple[str, ...], concepts: dict[str, tuple[str, ...]], note: str = "", scope: str = "1"
) -> str:
    """One record; the first of `concepts` is the preferred one, and each has its terms."""
    listed = "".join(f"   <TreeNumber>{number}</TreeNumber>\n" for number in numbers)
    tree = f"  <TreeNumberList>\n{listed}  </TreeNumberList>\n" if numbers else ""
    inner = "".join(_concept(id, at, *each, note) for at, each in enumerate(concepts.items()))
    return f"""<DescriptorRecord DescriptorClass = "{scope}">
  <DescriptorUI>{id}</DescriptorUI>
  <DescriptorName>
   <String>{name}</String>
  </DescriptorName>
  <DateCreated>
   <Year>1974</Year>
   <Month>11</Month>
   <Day>19</Day>
  </DateCreated>
  <AllowableQualifiersList>
   <AllowableQualifier>
    <QualifierReferredTo>
     <QualifierUI>Q000008</QualifierUI>
      <QualifierName>
      <String>administration &amp; dosage</String>
      </QualifierName>
    </QualifierReferredTo>
    <Abbreviation>AD</Abbreviation>
   </AllowableQualifier>
  </AllowableQualifiersList>
  <HistoryNote>91(75); was see under ANTIBIOTICS
  </HistoryNote>
  <SeeRelatedList>
   <SeeRelatedDescriptor>
    <DescriptorReferredTo>
     <DescriptorUI>D999999</DescriptorUI>
      <DescriptorName>
       <String>Something Else</String>
      </DescriptorName>
    </DescriptorReferredTo>
   </SeeRelatedDescriptor>
  </SeeRelatedList>
{tree}  <PharmacologicalActionList>
   <PharmacologicalAction>
    <DescriptorReferredTo>
     <DescriptorUI>D000900</DescriptorUI>
      <DescriptorName>
       <String>Anti-Bacterial Agents</String>
      </DescriptorName>
    </DescriptorReferredTo>
   </PharmacologicalAction>
  </PharmacologicalActionList>
  <ConceptList>
{inner}  </ConceptList>
 </DescriptorRecord>
"""


def _concept(id: str, at: int, name: str, terms: tuple[str, ...], note: str) -> str:
    preferred = "N" if at else "Y"
    scope = f"    <ScopeNote>{note}\n    </ScopeNote>\n" if note and not at else ""
    said = "".join(
        f"""     <Term  ConceptPreferredTermYN="{"N" if n else "Y"}"  IsPermutedTermYN="N"  LexicalTag="NON">
      <TermUI>T{id[1:]}{at}{n}</TermUI>
      <String>{term}</String>
      <ThesaurusIDlist>
       <ThesaurusID>NLM (1999)</ThesaurusID>
      </ThesaurusIDlist>
     </Term>
"""
        for n, term in enumerate((name, *terms))
    )
    return f"""   <Concept PreferredConceptYN="{preferred}">
    <ConceptUI>M{id[1:]}{at}</ConceptUI>
    <ConceptName>
     <String>{name}</String>
    </ConceptName>
    <RegistryNumberList>
     <RegistryNumber>0</RegistryNumber>
    </RegistryNumberList>
{scope}    <ConceptRelationList>
     <ConceptRelation RelationName="NRW">
     <Concept1UI>M{id[1:]}0</Concept1UI>
     <Concept2UI>M{id[1:]}1</Concept2UI>
     </ConceptRelation>
    </ConceptRelationList>
    <TermList>
{said}    </TermList>
   </Concept>
"""


RECORDS = (
    descriptor("D001829", "Body Regions", ("A01",), {"Body Regions": ("Region, Body", "Body Region")}),
    descriptor("D006257", "Head", ("A01.456",), {"Head": ("Heads",), "Caput": ()}, "The upper part; ≥ 1 &lt; 2 cm."),
    descriptor("D005123", "Eye", ("A01.456.505.420", "A09.371"), {"Eye": ("Eyes",)}, "The organ of sight (Fr. œil)."),
    descriptor("D005145", "Face", ("A01.456.505",), {"Face": ()}),
    descriptor("D012679", "Sense Organs", ("A09",), {"Sense Organs": ("Organs, Sense",)}),
    descriptor(
        "D000070657", "Sjögren&apos;s Tear Test", ("E01.1",), {"Sjögren&apos;s Tear Test": ("Schirmer–Prüfung",)}
    ),
    descriptor("D003933", "Diagnosis", ("E01",), {"Diagnosis": ("Diagnoses &amp; Examinations",)}),
    descriptor("D005260", "Female", (), {"Female": ("Females",)}, "Used as a check tag.", "3"),
)
DESC2026 = HEAD + "".join(RECORDS) + "</DescriptorRecordSet>\n"
