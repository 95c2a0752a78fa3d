/** Where a requirement stands in the protocol digest, and how binding it is. */
export interface Requirement {
  readonly id: string;
  readonly level: 'MUST' | 'SHOULD' | 'MAY' | 'VECTOR';
  readonly section: string;
}

const BY_SECTION: Readonly<Record<string, Readonly<Partial<Record<Requirement['level'], string>>>>> = {
  '5.1': {
    MUST: '001 002 003 004 005 006 007 008 012 013 014 016',
    SHOULD: '009 010 011 015',
  },
  '5.2': {
    MUST: '101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 119 120 122 123 124 125 126 128 129 130',
    MAY: '117 121',
    SHOULD: '118 127 131 132',
  },
  '5.3': {
    MUST: '301 302 303 304 305 306 307 308 309 310 311 312 315',
    SHOULD: '313 314',
  },
  '5.4': {
    MUST: '201 203 204 206 207 208 209 212 213 214 215 216 217 218 219 220 221 222 223 224 228 230 232',
    SHOULD: '202 205 210 211 225 226 227 229 231',
  },
  '6.1': {
    VECTOR: '01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27',
  },
  '6.2': {
    VECTOR: '30 31 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63',
  },
  '6.3': {
    VECTOR: '70 71 72 73 74 75 76 77 78 79 80 81',
  },
  '6.4': {
    VECTOR: '85 86 87 88 89 90 91',
  },
  '6.5': {
    VECTOR:
      '100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127 128 129 130 131 132 133 134 135 136 137 138',
  },
};

/** Every requirement and conformance vector of HCP 1.0, by id. Tests cite them; the report lists those nobody cites. */
export const REQUIREMENTS: readonly Requirement[] = Object.entries(BY_SECTION).flatMap(([section, levels]) =>
  Object.entries(levels).flatMap(([level, numbers]) =>
    numbers.split(' ').map((number) => ({
      id: `${level === 'VECTOR' ? 'V' : 'HCP'}-${number}`,
      // Object.entries widens the key; the table above is typed.
      level: level as Requirement['level'],
      section,
    })),
  ),
);
