export { couponRoutes } from './routes.js';
export { openCoupons, type CouponServices } from './services.js';
