export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];
