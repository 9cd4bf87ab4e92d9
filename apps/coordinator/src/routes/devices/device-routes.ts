/** `deviceRoutes` registers the routes of device management: webhooks, enrolment profiles, and the operators' device list. */
import type { FastifyPluginAsync } from 'fastify';
import type { DeviceManagement } from '../../devices/device-management.js';
import { addAdminDevices, addDevices } from './devices.js';

interface DeviceRoutesDeps {
  readonly devices: DeviceManagement;
  readonly now: () => number;
}

/** Adds no routes on a coordinator without device management. */
export const deviceRoutes: FastifyPluginAsync<DeviceRoutesDeps> = async (server, { devices, now }) => {
  const { managed, evidence } = devices;
  if (managed === null) return;
  addDevices(server, managed, now);
  addAdminDevices(server, managed, evidence, now);
};
