//! Devices and queues.
