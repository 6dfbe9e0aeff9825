SELECT uuid_str('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), uuid_str('{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'), uuid_str('x'), hex(uuid_blob('a0eebc999c0b4ef8bb6d6bb9bd380a11'));
SELECT length(uuid()), uuid() <> uuid();
