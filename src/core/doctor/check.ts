/** Verdicts from good to bad. `unknown` means that the server does not show the value. */
const VERDICTS = ['ok', 'unknown', 'risky', 'wrong'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** The result of a check: a few words if all is well, otherwise a sentence and a remedy. */
export type Judged =
  | { readonly verdict: 'ok' | 'unknown'; readonly says: string }
  | { readonly verdict: 'risky' | 'wrong'; readonly says: string; readonly todo: string };

export const ok = (says: string): Judged => ({ verdict: 'ok', says });
export const unknown = (says: string): Judged => ({ verdict: 'unknown', says });
export const risky = (says: string, todo: string): Judged => ({ verdict: 'risky', says, todo });
export const wrong = (says: string, todo: string): Judged => ({ verdict: 'wrong', says, todo });

/** A line of `seckill doctor`. Judges facts and makes no calls. */
export interface Check<F> {
  /** `<server>.<subject>`. Scripts rely on the id, so it must never change. */
  readonly id: string;
  /** Text for the documentation, like the next two fields. */
  readonly looksAt: string;
  /** Absent if never `wrong`. */
  readonly wrongIf?: string;
  /** Absent if never `risky`. */
  readonly riskyIf?: string;
  /** Set if no program may start while this check is wrong, because it would work wrongly, not merely slowly. */
  readonly stopsPrograms?: true;
  /** Null if the facts hold nothing to judge. */
  readonly judge: (facts: F) => Judged | null;
}

/** A line as `seckill doctor` shows it. */
export interface Finding {
  readonly id: string;
  readonly verdict: Verdict;
  readonly says: string;
  /** Null if there is nothing to do. */
  readonly todo: string | null;
}

/** The facts about a server, or why there are none. */
export type Asked<F> = F | Silent;

export interface Silent {
  /** A sentence. */
  readonly down: string;
  readonly todo: string;
}

export const isSilent = (asked: object): asked is Silent => 'down' in asked;

/** The only line of a server that does not answer. */
export const answers = (server: string, looksAt: string): Check<Asked<object>> => ({
  id: `${server}.answers`,
  looksAt,
  wrongIf: 'it does not, or its address is not set',
  judge: (asked) => (isSilent(asked) ? wrong(asked.down, asked.todo) : ok('yes')),
});

/** Judges the facts, in the order of the checks. */
export const findingsOf = <F>(checks: readonly Check<F>[], facts: F): Finding[] =>
  checks.flatMap(({ id, judge }) => {
    const judged = judge(facts);
    if (judged === null) return [];
    return [{ id, verdict: judged.verdict, says: judged.says, todo: 'todo' in judged ? judged.todo : null }];
  });

/** Returns the reasons not to start a program with these facts, in a sentence or two each. */
export const startProblems = <F>(checks: readonly Check<F>[], facts: F): string[] =>
  checks.flatMap(({ stopsPrograms, judge }) => {
    const judged = stopsPrograms === true ? judge(facts) : null;
    return judged?.verdict === 'wrong' ? [`${judged.says} ${judged.todo}`] : [];
  });

export const isWorse = (one: Verdict, other: Verdict): boolean => VERDICTS.indexOf(one) > VERDICTS.indexOf(other);

/** Returns the worst result, and the first of several that are equally bad. Null if there is no result. */
export const worstOf = (all: readonly (Judged | null)[]): Judged | null =>
  all.reduce(
    (worst, one) => (one !== null && (worst === null || isWorse(one.verdict, worst.verdict)) ? one : worst),
    null,
  );

/** Judges each server separately. @returns the worst verdict with its findings; names servers if there are several */
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

/** Formats a share for people, such as `42 %`. */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** Maximum number of names shown, because there may be dozens. */
const NAMED_MAX = 5;

export function listed(names: readonly string[]): string {
  const more = names.length - NAMED_MAX;
  return `${names.slice(0, NAMED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
