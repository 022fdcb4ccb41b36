export const AGREED: readonly string[];
export function productionPackages(lock: object): readonly {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly isAgreed: boolean;
  readonly isVerified: boolean;
}[];
