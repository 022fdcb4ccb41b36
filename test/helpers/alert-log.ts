import type { FiringAlert } from './live-prometheus.js';

/** A fired alert. Times are whole seconds since the watch began. */
export interface FiredAlert {
  readonly name: string;
  readonly about: string;
  readonly firedS: number;
  /** Null if it was still firing at the end. */
  clearedS: number | null;
}

/** Records which alerts fired, and when each ended. */
export class AlertLog {
  readonly fired: FiredAlert[] = [];

  /** @param all alerts that are pending or firing at this time */
  take(all: readonly FiringAlert[], atS: number): void {
    const firing = all.filter(({ state }) => state === 'firing');
    const isSame = (one: Pick<FiringAlert, 'name' | 'about'>, other: Pick<FiringAlert, 'name' | 'about'>): boolean =>
      one.name === other.name && one.about === other.about;
    const open = this.fired.filter(({ clearedS }) => clearedS === null);
    for (const alert of open) if (!firing.some((one) => isSame(one, alert))) alert.clearedS = atS;
    for (const one of firing) {
      if (open.some((alert) => isSame(one, alert))) continue;
      this.fired.push({ name: one.name, about: one.about, firedS: atS, clearedS: null });
    }
  }
}
