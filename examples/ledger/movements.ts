/** Money that goes from one account to another. */
export interface Movement {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly cents: number;
}

const ACCOUNTS = ['ada', 'ben', 'cleo', 'dan'];

/** The movements of a batch: the same for whoever works them out, here the bank and the auditor. */
export function movementsOf(batch: number, count: number): Movement[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${batch}-${index + 1}`,
    from: ACCOUNTS[index % 4] ?? '',
    to: ACCOUNTS[(index + batch) % 4] ?? '',
    cents: 100 * batch + index,
  }));
}
