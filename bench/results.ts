import type { Latency } from './load/load.js';
import type { CpuUser, Measured } from './measure.js';
import type { ScenarioName } from './options.js';
import type { FleetFigures } from './scenarios/fleet.js';
import type { LimitFigures } from './scenarios/limits.js';
import type { PairedFigures } from './scenarios/paired.js';
import type { SaleVerdict } from './session/stores.js';

/** The figures of a scenario that sells or refuses. */
export interface LoadFigures {
  readonly kind: 'load';
  readonly scenario: ScenarioName;
  /** The settings that differ between scenarios. */
  readonly about: string;
  readonly requests: number;
  /** Answers of any status per second, from the first request to the last answer. */
  readonly answersPerSecond: number;
  readonly acceptedPerSecond: number;
  /** Orders in MySQL per second, from the first request to the commit of the last order. */
  readonly landedPerSecond: number;
  readonly latency: Latency;
  readonly batchSizeMean: number;
  /** CPU µs per accepted purchase, or per answer if the scenario sells almost nothing. */
  readonly cpuMicros: Readonly<Record<CpuUser, number>>;
  readonly idleCores: number;
  readonly yardstickMicros: number;
  readonly answersByCode: Readonly<Record<string, number>>;
  /** Requests without an answer, because of broken connections or time-outs. */
  readonly unanswered: number;
  readonly ranOutOfBuyers: boolean;
  /** Figures that only this scenario has, by their name in the table. */
  readonly extra: Readonly<Record<string, number | string>>;
  readonly verdict: SaleVerdict;
}

export type ScenarioResult = LoadFigures | FleetFigures | LimitFigures | PairedFigures;

/** Converts measurements into figures. CPU is divided by `per`. */
export function loadFigures(
  scenario: ScenarioName,
  about: string,
  { measured, verdict, per }: { measured: Measured; verdict: SaleVerdict; per: 'accepted' | 'answered' },
  extra: LoadFigures['extra'] = {},
): LoadFigures {
  const { load, landed, landedSeconds, answeredSeconds, cpuSeconds } = measured;
  const rate = (count: number, seconds: number): number => (seconds > 0 ? count / seconds : 0);
  const divisor = Math.max(1, load[per]);
  const micros = Object.entries(cpuSeconds).map(([user, seconds]) => [user, (seconds * 1e6) / divisor]);
  return {
    kind: 'load',
    scenario,
    about,
    extra,
    verdict,
    requests: load.sent,
    answersPerSecond: rate(load.answered, answeredSeconds),
    acceptedPerSecond: rate(load.accepted, answeredSeconds),
    landedPerSecond: rate(landed, landedSeconds),
    latency: load.latency,
    batchSizeMean: measured.batchSizeMean,
    cpuMicros: Object.fromEntries(micros) as Record<CpuUser, number>,
    idleCores: measured.idleCores,
    yardstickMicros: measured.yardstickMicros,
    answersByCode: measured.answersByCode,
    unanswered: load.sent - load.answered,
    ranOutOfBuyers: load.ranOutOfBuyers,
  };
}

/** True if the bench fails because of this result. */
export const isBad = (result: ScenarioResult): boolean => problemsIn(result).length > 0;

/** Returns the findings of the checks as sentences. */
export const problemsIn = (result: ScenarioResult): readonly string[] =>
  result.kind === 'load' ? result.verdict.problems : [];
