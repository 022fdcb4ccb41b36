/** From good to bad. `unknown`: the server does not let us see it. */
const VERDICTS = ['ok', 'unknown', 'risky', 'wrong'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** What a check found: of what is well a few words, of what is not a sentence, with one that says what to do. */
export type Judged =
  | { readonly verdict: 'ok' | 'unknown'; readonly says: string }
  | { readonly verdict: 'risky' | 'wrong'; readonly says: string; readonly todo: string };

export const ok = (says: string): Judged => ({ verdict: 'ok', says });
export const unknown = (says: string): Judged => ({ verdict: 'unknown', says });
export const risky = (says: string, todo: string): Judged => ({ verdict: 'risky', says, todo });
export const wrong = (says: string, todo: string): Judged => ({ verdict: 'wrong', says, todo });

/** One line of `seckill doctor`. It judges facts and asks nobody. */
export interface Check<F> {
  /** `<server>.<what>`. Scripts go by it, so it stays. */
  readonly id: string;
  /** For the page of the documentation, as are the next two. */
  readonly looksAt: string;
  /** Left out: it is never wrong. */
  readonly wrongIf?: string;
  /** Left out: it is never risky. */
  readonly riskyIf?: string;
  /** A program that finds this wrong does not start: it would do wrong and not only be slow. */
  readonly stopsPrograms?: true;
  /** Null: these facts have nothing that it could look at. */
  readonly judge: (facts: F) => Judged | null;
}

/** A line as it is shown. */
export interface Finding {
  readonly id: string;
  readonly verdict: Verdict;
  readonly says: string;
  /** What to do; null where nothing is. */
  readonly todo: string | null;
}

/** The facts of a server, or why there are none. */
export type Asked<F> = F | Silent;

export interface Silent {
  /** A sentence. */
  readonly down: string;
  readonly todo: string;
}

export const isSilent = (asked: object): asked is Silent => 'down' in asked;

/** The line that says whether a server answers; where it does not, it is the only one. */
export const answers = (server: string, looksAt: string): Check<Asked<object>> => ({
  id: `${server}.answers`,
  looksAt,
  wrongIf: 'it does not answer within the time, refuses the login, or its address is not set',
  judge: (asked) => (isSilent(asked) ? wrong(asked.down, asked.todo) : ok('yes')),
});

/** In the order of the checks. */
export const findingsOf = <F>(checks: readonly Check<F>[], facts: F): Finding[] =>
  checks.flatMap(({ id, judge }) => {
    const judged = judge(facts);
    if (judged === null) return [];
    return [{ id, verdict: judged.verdict, says: judged.says, todo: 'todo' in judged ? judged.todo : null }];
  });

/** Why a program must not start on these facts, a sentence or two each. */
export const startProblems = <F>(checks: readonly Check<F>[], facts: F): string[] =>
  checks.flatMap(({ stopsPrograms, judge }) => {
    const judged = stopsPrograms === true ? judge(facts) : null;
    return judged?.verdict === 'wrong' ? [`${judged.says} ${judged.todo}`] : [];
  });

export const isWorse = (one: Verdict, other: Verdict): boolean => VERDICTS.indexOf(one) > VERDICTS.indexOf(other);

/** The worst of them; of equals the first. Null: there is none. */
export const worstOf = (all: readonly (Judged | null)[]): Judged | null =>
  all.reduce(
    (worst, one) => (one !== null && (worst === null || isWorse(one.verdict, worst.verdict)) ? one : worst),
    null,
  );

/**
 * Judges each server of several alone.
 * @returns the worst verdict, with all that was found of it; the servers are named where there are several
 */
export function perServer<S extends { readonly server: string }>(
  servers: readonly S[],
  judge: (server: S) => Judged | null,
): Judged | null {
  const judged = servers.flatMap((one) => {
    const found = judge(one);
    return found === null ? [] : [{ server: one.server, found }];
  });
  const worst = worstOf(judged.map(({ found }) => found));
  if (worst === null) return null;
  const servedBy = new Map<string, string[]>();
  const todos = new Set<string>();
  for (const { server, found } of judged) {
    if (found.verdict !== worst.verdict) continue;
    servedBy.set(found.says, [...(servedBy.get(found.says) ?? []), server]);
    if ('todo' in found) todos.add(found.todo);
  }
  const isNamed = servers.length > 1 && !(worst.verdict === 'ok' && servedBy.size === 1);
  const parts = [...servedBy].map(([text, names]) => (isNamed ? `${names.join(', ')}: ${text}` : text));
  return 'todo' in worst
    ? { verdict: worst.verdict, says: parts.join(' '), todo: [...todos].join(' ') }
    : { verdict: worst.verdict, says: parts.join('; ') };
}

/** A share for people, such as `42 %`. */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** Names that are shown; what was made otherwise has dozens. */
const NAMED_MAX = 5;

export function listed(names: readonly string[]): string {
  const more = names.length - NAMED_MAX;
  return `${names.slice(0, NAMED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
