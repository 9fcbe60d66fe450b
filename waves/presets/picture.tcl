# A picture of what the save file opens on, without a hand on the mouse; leaves run.png.
#   xvfb-run -a -s '-screen 0 1600x900x24' gtkwave run.vcd run.gtkw -S waves/presets/picture.tcl
gtkwave::/File/Grab_To_File run.png
gtkwave::/File/Quit
